import { readInstant } from "../../core/contract/timestamp.ts";
import { type TextKind, readFreeText, wantedText } from "../../platform/free-text.ts";

/** One input of an act, as text: an option of a command, a field of a form. Its limits are the same at every door. */
export interface Field<T> {
  /** Undefined for a text that is no such value. */
  read(typed: string): T | undefined;
  /** Completes "It has to be …": "a whole number from 1 to 720". */
  readonly wanted: string;
  /** The default value. Absent: the field is required. */
  readonly absent?: { readonly value: T };
  /** The longest text, for a form's `maxlength`. */
  readonly longest?: number;
  /** It may be repeated. `read` gets all of them, with spaces between. */
  readonly isList?: true;
  /** The texts that it may be, where these are few. */
  readonly names?: readonly string[];
}

export type Fields<Input> = { readonly [Name in keyof Input]-?: Field<Input[Name]> };

/** The number, name or key of an act's object. Its existence is checked under the lock. */
export const reference: Field<string> = {
  // PostgreSQL takes no NUL in a text.
  read: (typed) => (typed.length <= 255 && typed !== "" && !typed.includes("\0") ? typed : undefined),
  wanted: "a number, a name or a key of at most 255 characters",
  longest: 255,
};

/** A person's text: a note, a reason. */
export const text = (kind: TextKind): Field<string> => ({
  read: (typed) => readFreeText(typed, kind) ?? undefined,
  wanted: wantedText(kind),
  longest: kind.longest,
});

/** `unit` is what it counts. */
export const wholeNumber = (min: number, max: number, unit?: string): Field<number> => ({
  read(typed) {
    const value = Number(typed);
    return /^\d{1,15}$/.test(typed) && value >= min && value <= max ? value : undefined;
  },
  wanted: `a whole number ${unit === undefined ? "" : `of ${unit} `}from ${min} to ${max}`,
});

/** The number of a row. */
export const rowNumber = wholeNumber(1, 999_999_999_999_999);

export const instant: Field<Date> = {
  read: (typed) => readInstant(typed) ?? undefined,
  wanted: "a time with its offset, such as 2026-03-01T12:00:00Z",
};

export const oneOf = <T extends string>(names: readonly T[]): Field<T> => ({
  read: (typed) => names.find((name) => name === typed),
  wanted: `one of ${names.join(", ")}`,
  names,
});

/** Several of them: an option that is given again, boxes of one name. */
export const listOf = <T extends string>({ read, wanted, names = [] }: Field<T>): Field<T[]> => ({
  wanted,
  names,
  isList: true,
  read(typed) {
    const values = typed
      .split(" ")
      .filter((each) => each !== "")
      .map(read);
    return values.includes(undefined) ? undefined : [...new Set(values as T[])];
  },
});

/** A box that is ticked, an option without a value. */
export const flag: Field<boolean> = {
  read: (typed) => (typed === "yes" ? true : undefined),
  wanted: "yes",
  absent: { value: false },
};

export const optional = <T>(field: Field<T>): Field<T | null> => ({
  ...field,
  absent: { value: null },
});

export const withDefault = <T>(field: Field<T>, value: T): Field<T> => ({
  ...field,
  absent: { value },
});
