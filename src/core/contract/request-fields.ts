import { z } from "zod";
import { canonicalTimestamp } from "./timestamp.ts";

/*
 * Value types of requests. They are stricter than those of answers: the service refuses invalid values, while a reader
 * of its answers keeps unknown ones.
 */

/** Issues raised by a refinement carry the service's error code here. */
export interface IssueDetails {
  code: "contains_html" | "invalid_format" | "invalid_value";
}

function details(code: IssueDetails["code"], error: string) {
  return { error, params: { code } satisfies IssueDetails };
}

/** Free text; HTML is refused (`contains_html`), while `a < b` is text. Length limits are not documented. */
export function plainText(maxLength = 500) {
  return z
    .string()
    .max(maxLength)
    .refine((text) => !holdsHtml(text), details("contains_html", "must not contain HTML"));
}

/** Money in cents. */
export const cents = z.int().nonnegative();
export const positiveCents = z.int().positive();

export const currency = z.string().regex(/^[a-z]{3}$/, "must be three lower-case letters");
export const email = z.email().max(254);
export const phone = z.string().regex(/^\+[1-9]\d{6,14}$/, "must be in E.164 form");
const country = z
  .string()
  .refine(
    (text) => countryCodes.has(text),
    details("invalid_format", "must be ISO 3166-1 alpha-2, upper case, such as US"),
  );
export const isoDate = z.iso.date();
/** An instant with its offset; kept in UTC with milliseconds. */
export const isoDateTime = z
  .string()
  .refine(
    (text) => canonicalTimestamp(text) !== null,
    details("invalid_format", "must be an ISO 8601 date-time with its offset"),
  )
  .transform((text) => new Date(canonicalTimestamp(text) ?? text).toISOString());

const maxMetadataBytes = 16_384;
const maxMetadataDepth = 5;

/** Custom data: any JSON of moderate size without HTML. The service's own limits are not documented. */
export const metadataInput = z.custom<Record<string, unknown>>().superRefine((value, context) => {
  const problem = metadataProblem(value);
  if (problem !== null) {
    context.addIssue({ code: "custom", message: problem.message, params: { code: problem.code } });
  }
});

function metadataProblem(value: unknown): { code: IssueDetails["code"]; message: string } | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { code: "invalid_value", message: "must be an object" };
  }
  const kind = firstProblem(value, 1);
  if (kind === "deep") return { code: "invalid_value", message: "is nested too deeply" };
  if (kind === "html") return { code: "contains_html", message: "must not contain HTML" };
  if (JSON.stringify(value).length > maxMetadataBytes) {
    return { code: "invalid_value", message: `must be at most ${maxMetadataBytes} bytes` };
  }
  return null;
}

function firstProblem(value: unknown, depth: number): "deep" | "html" | null {
  if (typeof value === "string") return holdsHtml(value) ? "html" : null;
  if (typeof value !== "object" || value === null) return null;
  if (depth > maxMetadataDepth) return "deep";
  for (const [key, inner] of Object.entries(value)) {
    const problem = holdsHtml(key) ? "html" : firstProblem(inner, depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

const filledIn = (maxLength?: number) => plainText(maxLength).min(1, "must not be empty");

/** An address as orders and subscriptions take it. */
export const shippingAddressInput = z.object({
  first_name: filledIn(),
  last_name: filledIn(),
  address_line1: filledIn(),
  address_line2: plainText().nullish(),
  city: filledIn(),
  state: filledIn(),
  postal_code: filledIn(20),
  country,
  phone: phone.nullish(),
});

/** An address as customers take it: one full name, or a first and a last one. */
export const customerAddressInput = shippingAddressInput.extend({
  full_name: plainText().nullish(),
  first_name: plainText().nullish(),
  last_name: plainText().nullish(),
});

export const billingCycleInput = z
  .object({
    interval: z.enum(["day", "month"]),
    interval_count: z.int().positive().max(1000),
    /** Null, which plans show on day-based cycles, means none. */
    anchor_day: z
      .union([z.int().min(1).max(31), z.literal("signup_date")], {
        error: "must be a day of the month from 1 to 31, or signup_date",
      })
      .nullish(),
  })
  .refine((cycle) => cycle.interval === "month" || typeof cycle.anchor_day !== "number", {
    ...details("invalid_value", "is for month-based cycles only"),
    path: ["anchor_day"],
  });

/** Fields that a processor may require before it vaults a card; they are not documented. */
export const billingDetails = z.object({
  name: plainText().nullish(),
  address: shippingAddressInput.partial().nullish(),
});

/** Matches the start of a tag, a closing tag, a comment or a declaration. */
const tagStart = /<[a-z!/]/i;
/** A tag with an attribute: browsers accept it even where its end is missing. */
const openTagWithAttribute = /<[a-z][a-z0-9-]*[\s/]+[a-z-]+\s*=/i;

/**
 * Whether a text holds HTML (`contains_html`); `a < b` is text. Takes time in proportion to the text, which may be as
 * long as a request.
 */
function holdsHtml(text: string): boolean {
  const start = text.search(tagStart);
  if (start < 0) return false;
  return text.lastIndexOf(">") > start || openTagWithAttribute.test(text);
}

/** ISO 3166-1 alpha-2. */
const codes = `
  AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN
  BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ
  DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL
  GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM
  JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME
  MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP
  NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD
  SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO
  TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW
`;

const countryCodes: ReadonlySet<string> = new Set(codes.trim().split(/\s+/));
