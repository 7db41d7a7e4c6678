import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import { type ListPart, type ListedObject, type ListedRow, isAfter, listedColumns, listedOf } from "./look-up.ts";
import { resourceNamed } from "./resources.ts";

/** SQL for the words of a text: small letters and digits, without accents, between single blanks. */
const wordsSql = (text: string): string =>
  `trim(lower(regexp_replace(regexp_replace(normalize(${text}, NFD),
    '[\\u0300-\\u036f]+', '', 'g'), '[^[:alnum:]]+', ' ', 'g')))`;

/** SQL for the words by which a customer is found: the expression of the index customers_words. */
const customerWords = `array_to_tsvector(string_to_array(${wordsSql(
  `left(coalesce(first_name, ''), 100) || ' ' || left(coalesce(last_name, ''), 100) || ' ' ||
    left(split_part(coalesce(email, ''), '@', 1), 100)`,
)}, ' '))`;

/** Each word of `:words` is the beginning of one of the customer's; no word matches nothing. */
const isWanted = `${customerWords} @@ cast(nullif(replace(${wordsSql("cast(:words as text)")}, ' ', ':* & ') || ':*', ':*') as tsquery)`;

/** More customers than these are too many to read and to sort. */
const mostMatches = 500;

export interface FoundCustomers {
  rows: ListedObject[];
  /** Whether more customers match than were looked at: then some of them are listed. */
  isCut: boolean;
}

/** What a customer is searched by. Personal data: the access is recorded. */
export interface CustomerSearch {
  /** Each of its words is the beginning of a word of the name, or of the address before its @. */
  words: string;
  /** The beginning of the whole address, in small letters; null: any. */
  address: string | null;
}

/**
 * The customers that have all the words, the newest first, after a certain one. An index finds them. The work is
 * bounded: of more than 500 that match, 500 are looked at, any of them. Two statements; none without a word of two
 * letters or digits.
 */
export async function findCustomers(
  db: Knex,
  { words, address }: CustomerSearch,
  { after, limit }: ListPart,
): Promise<FoundCustomers> {
  if (!/[\p{L}\p{N}]{2}/u.test(words)) return { rows: [], isCut: false };
  const { rows: matching } = await db.raw<{ rows: { id: string }[] }>(
    `select id from mirror.customers where ${isWanted} limit ${mostMatches + 1}`,
    { words },
  );
  const { rows } = await db.raw<{ rows: ListedRow[] }>(
    `select ${listedColumns(resourceNamed("customer"))} from mirror.customers t where t.id = any(:ids::text[])
       and (cast(:address as text) is null or starts_with(lower(t.email), :address)) ${isAfter("customers", after)}
     order by t.created_at desc nulls last, t.id desc limit :limit`,
    {
      ids: sqlArray(matching.slice(0, mostMatches).map(({ id }) => id)),
      address,
      limit,
      ...(after === null ? {} : { after }),
    },
  );
  return { rows: rows.map(listedOf), isCut: matching.length > mostMatches };
}
