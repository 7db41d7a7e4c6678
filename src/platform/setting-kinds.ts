import { isLoopbackHost } from "./http/listen.ts";
import { isIP } from "node:net";
import { z } from "zod";
import { isCronExpression } from "./cron.ts";
import { parseHeaderPairs } from "./tracing/header-pairs.ts";

/** Turns the text of an environment variable into a value. */
export interface SettingKind<T> {
  schema: z.ZodType<T>;
  /** Completes the sentence "it should be …". */
  should: string;
}

const kind = <T>(schema: z.ZodType<T>, should: string): SettingKind<T> => ({ schema, should });

/** `wrong` completes `NAME …` in a message. It must never contain the value, which may be a secret. */
const check = (isRight: (text: string) => boolean, wrong: string) => z.string().refine(isRight, { error: wrong });

const commaList = z.string().transform((text) => text.split(",").map((item) => item.trim()));

export const integer = (min: number, max: number, unit: string): SettingKind<number> =>
  kind(
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number)
      .pipe(z.number().min(min).max(max)),
    `a whole number of ${unit} from ${min} to ${max}`,
  );

export const port: SettingKind<number> = kind(
  z
    .string()
    .regex(/^\d{1,5}$/)
    .transform(Number)
    .pipe(z.number().max(65_535)),
  "a whole number from 0 to 65535 (0 picks a free port)",
);

export const host: SettingKind<string> = kind(
  z.string().refine((text) => isIP(text) > 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text)),
  "an address or a host name to listen on, such as 127.0.0.1, without scheme and port",
);

export const oneOf = <const T extends string>(names: readonly T[]): SettingKind<T> =>
  kind(z.enum(names as unknown as [T, ...T[]]), `one of ${names.join(", ")}`);

export const path: SettingKind<string> = kind(
  z.string().refine((text) => !text.includes("\0")),
  "the path of a directory",
);

export const file: SettingKind<string> = kind(path.schema, "the path of a file");

/** Text that is passed to another program unchanged. */
export const printable: SettingKind<string> = kind(
  check((text) => /^[\x21-\x7e]+$/.test(text), "has spaces, line breaks or non-ASCII characters in it"),
  "printable ASCII characters without spaces",
);

export const timeZone: SettingKind<string> = kind(
  z.string().refine(isTimeZone),
  "a time zone of the IANA list, such as Europe/Berlin or UTC",
);

export const cron: SettingKind<string> = kind(
  z.string().refine(isCronExpression),
  'five fields (minute, hour, day, month, weekday) as cron has them, such as "30 3 * * *"',
);

/** A base address: https, or http on loopback only. Returned without a trailing slash. */
export const baseUrl = (example: string): SettingKind<string> =>
  kind(
    z
      .string()
      .refine((text) => URL.canParse(text), { error: "is not a URL", abort: true })
      .transform((text) => new URL(text))
      .refine(isHttpsOrLoopback, { error: "sends everything unencrypted" })
      .refine((url) => url.username === "" && url.password === "", {
        error: "has a user name or password in it",
      })
      .refine((url) => url.search === "" && url.hash === "", { error: "has a ? or # in it" })
      .transform((url) => url.href.replace(/\/+$/, "")),
    `a URL with https (or with http on a loopback address), such as ${example}`,
  );

export const urlWithScheme = (schemes: readonly string[], example: string): SettingKind<string> =>
  kind(
    check((text) => URL.canParse(text), "is not a URL")
      .refine((text) => schemes.includes(text.split(":", 1)[0] ?? ""), {
        error: `does not begin with ${schemes.map((scheme) => `${scheme}://`).join(" or ")}`,
      })
      .refine((text) => !isPasswordCut(text), {
        error: "has a # / ? or @ in it that is not percent-encoded (%23 %2F %3F %40)",
      }),
    `a URL such as ${example}`,
  );

/** Mailers know parameters of such a URL, and silently drop unknown ones. Here the URL has none. */
export const mailServerUrl: SettingKind<string> = (() => {
  const { schema, should } = urlWithScheme(
    ["smtp", "smtps"],
    "smtps://user:password@mail.example.com (special characters percent-encoded)",
  );
  const bare = z.string().superRefine((text, context) => {
    const { pathname, search, searchParams, hash } = new URL(text);
    if (["", "/"].includes(pathname) && search === "" && hash === "") return;
    const [name = ""] = searchParams.keys();
    const what = /^[\w.-]{1,40}$/.test(name) ? `the parameter ${name}` : "something behind the host";
    context.addIssue({
      code: "custom",
      message:
        `has ${what}, and there are no parameters: smtp:// is encrypted by STARTTLS, except to this machine ` +
        "(127.0.0.1, [::1], localhost), smtps:// from the start, and NODE_EXTRA_CA_CERTS names a PEM file with " +
        "certificates to trust besides",
    });
  });
  return kind((schema as z.ZodType<string, string>).pipe(bare), should);
})();

/** The driver connects to one host, and would take a list for the name of one. */
export const postgresUrl = (example: string): SettingKind<string> => {
  const { schema, should } = urlWithScheme(["postgres", "postgresql"], example);
  const oneHost = z.string().refine((text) => !namesSeveralHosts(text), {
    error:
      "names several hosts, and only one is connected to: give one address that follows the primary, such as a DNS name, " +
      "a virtual IP or a pooler",
    abort: true,
  });
  return kind(oneHost.pipe(schema as z.ZodType<string, string>), should);
};

/** Matches `h1,h2` or `h1:5432,h2:5432`, which libpq takes. */
function namesSeveralHosts(text: string): boolean {
  const [, authority = ""] = /^\w+:\/\/([^/?#]*)/.exec(text) ?? [];
  return authority.slice(authority.lastIndexOf("@") + 1).includes(",");
}

/** A special word, or a value of another kind. */
export const orWord = <T>(word: string, other: SettingKind<T>): SettingKind<T | string> => ({
  schema: z.string().transform((text, context): T | string => {
    if (text === word) return word;
    const parsed = other.schema.safeParse(text);
    if (parsed.success) return parsed.data;
    for (const { message } of parsed.error.issues) context.addIssue({ code: "custom", message });
    return z.NEVER;
  }),
  should: `${other.should}, or the word ${word}`,
});

/** A bare address: a display name could smuggle a second one in. */
export const mailAddress: SettingKind<string> = kind(
  check((text) => z.email().safeParse(text).success, "is not an e-mail address"),
  "an e-mail address such as tallyhook@example.com",
);

export const mailAddressList: SettingKind<readonly string[]> = kind(
  commaList.refine((addresses) => addresses.every((address) => z.email().safeParse(address).success), {
    error: "has a part that is not an e-mail address",
  }),
  "e-mail addresses separated by commas, such as finance@example.com,cfo@example.com",
);

/** A token that is sent in an HTTP header. */
export const headerToken = (minBytes: number): SettingKind<string> =>
  kind(
    check((text) => /^[\x21-\x7e]*$/.test(text), "has spaces, line breaks or non-ASCII characters in it").refine(
      (text) => Buffer.byteLength(text) >= minBytes,
      {
        error: `is shorter than ${minBytes} bytes`,
      },
    ),
    `at least ${minBytes} printable ASCII characters without spaces`,
  );

export const headerName: SettingKind<string> = kind(
  check((text) => /^[A-Za-z][A-Za-z0-9-]*$/.test(text), "is no name of a header").transform((text) =>
    text.toLowerCase(),
  ),
  "the name of a header, such as X-Forwarded-Email",
);

export const headerPairs: SettingKind<string> = kind(
  check((text) => parseHeaderPairs(text) !== null, "has a part that is not name=value"),
  "headers as name=value, separated by commas, what is no plain text percent-encoded",
);

export const oneLineOfText: SettingKind<string> = kind(
  check((text) => !/\p{Cc}/u.test(text), "has line breaks or other control characters in it"),
  "one line of text",
);

export const fraction: SettingKind<number> = kind(
  z
    .string()
    .regex(/^\d(\.\d{1,10})?$/)
    .transform(Number)
    .pipe(z.number().max(1)),
  "a number from 0 to 1, such as 0.1",
);

export const addressList: SettingKind<readonly string[]> = kind(
  commaList.refine((addresses) => addresses.every((address) => isIP(address) !== 0), {
    error: "has a part that is no IP address",
  }),
  "IP addresses separated by commas, such as 10.0.0.5,10.0.0.6",
);

/** `name=value` pairs with one of a few values. The user of the setting checks the names. */
export const choices = <const T extends string>(
  values: readonly T[],
  example: string,
): SettingKind<Readonly<Record<string, T>>> =>
  kind(
    commaList.transform((pairs, context): Record<string, T> => {
      const chosen: Record<string, T> = {};
      for (const pair of pairs) {
        const [name = "", value, ...more] = pair.split("=").map((part) => part.trim());
        const known = values.find((each) => each === value);
        if (/^[a-z][a-z0-9_]*$/.test(name) && known !== undefined && more.length === 0) {
          chosen[name] = known;
        } else {
          context.addIssue({ code: "custom", message: "has a part that is not name=value" });
        }
      }
      return chosen;
    }),
    `name=value pairs separated by commas, each value one of ${values.join(", ")}, such as ${example}`,
  );

export const subsetOf = <const T extends string>(names: readonly T[]): SettingKind<readonly T[]> =>
  kind(
    commaList.pipe(z.array(z.enum(names as unknown as [T, ...T[]]))),
    `one or more of ${names.join(", ")}, separated by commas`,
  );

/** Names that a word may follow. The user of the setting checks the names. */
export const namedItems = <const T extends string>(
  words: readonly T[],
  example: string,
): SettingKind<readonly { name: string; word: T | null }[]> =>
  kind(
    commaList.transform((items, context) =>
      items.map((item) => {
        const [name = "", text, ...more] = item.split(":").map((part) => part.trim());
        const word = words.find((each) => each === text) ?? null;
        const isRight = /^[a-z][a-z0-9-]*$/.test(name) && more.length === 0;
        if (!isRight || (text !== undefined && word === null)) {
          context.addIssue({
            code: "custom",
            message: "has a part that is neither a name nor name:word",
          });
        }
        return { name, word };
      }),
    ),
    `names separated by commas, each optionally followed by :${words.join(" or :")}, such as ${example}`,
  );

/** Added to the fault of one of several secrets: some services show theirs as `v1,whsec_…`. */
export const ifSplitByComma =
  " (commas separate secrets; if one secret was split, leave out the comma and what is before it, such as v1)";

const listOrNone = commaList.transform((items) => (items.join() === "none" ? [] : items));

/**
 * Newest first; the word `none` stands for an empty list, for a file that has to exist. A short or empty secret among
 * them is an error and is never skipped, and an empty text never means none.
 */
export const secretList = (minBytes: number): SettingKind<readonly string[]> =>
  kind(
    listOrNone.superRefine((secrets, context) => {
      const hint = secrets.length > 1 ? ifSplitByComma : "";
      secrets.forEach((secret, i) => {
        const bytes = Buffer.byteLength(secret);
        const addIssue = (message: string) => context.addIssue({ code: "custom", message });
        if (bytes < minBytes) addIssue(`has ${bytes} bytes in its secret number ${i + 1}${hint}`);
        // A file with one secret a line would be read as one long secret, which verifies nothing.
        if (/\s/.test(secret)) addIssue(`has a space or line break in its secret number ${i + 1}`);
      });
    }),
    `secrets of at least ${minBytes} bytes each, newest first, separated by commas; or none`,
  );

const hexKeyPattern = /^[0-9a-f]{64}$/i;

export const hexKey: SettingKind<string> = kind(
  check((text) => hexKeyPattern.test(text), "is not 64 hex digits").transform((text) => text.toLowerCase()),
  "64 hex digits (make one with: openssl rand -hex 32)",
);

export const hexKeyList: SettingKind<readonly string[]> = kind(
  commaList.refine((keys) => keys.every((key) => hexKeyPattern.test(key)), {
    error: "has a key that is not 64 hex digits",
  }),
  "keys of 64 hex digits each, separated by commas",
);

function isTimeZone(name: string): boolean {
  // Intl also accepts offsets (+01:00), which ignore daylight saving and which PostgreSQL reads with the opposite sign.
  if (!/^[a-z]/i.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether a password is cut short by a # / or ? of its own. Part of it is then read as the host, and messages show
 * hosts. A right URL has no @ and no # after its host.
 */
function isPasswordCut(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { pathname, search } = new URL(text);
  return text.includes("#") || pathname.includes("@") || search.includes("@");
}

function isHttpsOrLoopback({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || (protocol === "http:" && isLoopbackHost(hostname));
}
