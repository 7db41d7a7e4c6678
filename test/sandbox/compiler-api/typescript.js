// oxlint-disable-next-line import/no-default-export -- the default export is what stands in for TypeScript
export { ts as default } from "@ts-morph/common";
