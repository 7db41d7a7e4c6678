import type { Knex } from "knex";

/**
 * All currencies with their decimals by ISO 4217, as src/platform/money.ts has them (a test compares the two). The
 * table named only those that have not two decimals, and took every other code for one of two.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    delete from reports.currencies;
    insert into reports.currencies (code, exponent)
    select unnest(string_to_array('bif byr clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf', ' ')), 0
    union all select unnest(string_to_array(
      'aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob bov brl bsd btn bwp byn bzd cad cdf che chf '
      'chw cny cop cou crc cuc cup cve czk dkk dop dzd eek egp ern etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl '
      'hrk htg huf idr ils inr irr jmd kes kgs khr kpw kyd kzt lak lbp lkr lrd lsl ltl lvl mad mdl mga mkd mmk mnt mop '
      'mro mru mur mvr mwk mxn mxv myr mzn nad ngn nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr '
      'sdg sek sgd shp sle sll sos srd ssp std stn svc syp szl thb tjs tmt top try ttd twd tzs uah usd usn uss uyu uzs '
      'ved vef ves wst xad xcd xcg yer zar zmk zmw zwg zwl', ' ')), 2
    union all select unnest(string_to_array('bhd iqd jod kwd lyd omr tnd', ' ')), 3
    union all select unnest(string_to_array('clf uyw', ' ')), 4;
    comment on table reports.currencies is
      'ISO 4217: how many decimals an amount in minor units has. Of a code that is not here that is not known.';
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`delete from reports.currencies where exponent = 2 or code = 'byr'`);
}
