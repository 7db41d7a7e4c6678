import { register } from "node:module";

/*
 * openapi-typescript prints its types with the compiler API of TypeScript 5, which TypeScript 7 does not have. A copy of
 * that API which brings no `tsc` of its own stands in for it:
 * node --import …/register.js node_modules/openapi-typescript/bin/cli.js
 */
const api = new URL("./typescript.js", import.meta.url).href;
const hooks = `export async function resolve(specifier, context, next) {
  if (specifier !== "typescript") return next(specifier, context);
  return { url: ${JSON.stringify(api)}, shortCircuit: true };
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
