import type pg from "pg";
import { onDemand } from "../on-demand.ts";
import { type OwnSettings, setInTransaction } from "./session-settings.ts";

/**
 * A class of clients for a pooler that lends its server connections by the transaction (PgBouncer: `pool_mode =
 * transaction`), so no session state outlives a transaction. Every transaction begins with its own settings, over those
 * of server, database and role, and a statement outside of one gets one of its own. No statement has a name: on the
 * next server connection, the name would be unknown, or belong to another client's statement. Statements of one client
 * run one after another.
 */
export function transactionPooledClient(own: OwnSettings = {}): typeof pg.Client {
  const settings = setInTransaction(own);

  return class TransactionPooledClient extends onDemand.pg.Client {
    #previous: Promise<unknown> = Promise.resolve();

    /** Like the driver's: returns a promise, or calls back. */
    override query(asked: string | pg.QueryConfig, ...more: unknown[]): never {
      const { name: _, ...query } = typeof asked === "string" ? { text: asked } : { ...asked };
      const values = more.find((each) => Array.isArray(each));
      const callBack = more.find((each) => typeof each === "function");
      const given = values === undefined ? query : { ...query, values };
      const answered = this.#previous.then(() => this.#run(given));
      this.#previous = answered.catch(() => {});
      if (callBack === undefined) return answered as never;
      answered.then(
        (result) => callBack(null, result) as unknown,
        (error: unknown) => callBack(error) as unknown,
      );
      return undefined as never;
    }

    async #run(query: pg.QueryConfig): Promise<unknown> {
      if (this.getTransactionStatus() !== "I") return super.query(query);
      if (beginsTransaction.test(query.text)) return this.#begin(query.text);
      await this.#begin("begin");
      try {
        const result = await super.query(query);
        await super.query("commit");
        return result;
      } catch (error) {
        await super.query("rollback").catch(() => {});
        throw error;
      }
    }

    /**
     * Sends one message, together with the text after it. Where the settings are refused, the transaction does not
     * begin.
     */
    async #begin(text: string): Promise<unknown> {
      const [, begin = "", rest = ""] = /^([^;]*);?(.*)$/s.exec(text) ?? [];
      const isolated = hasIsolation.test(begin) ? begin : `${begin} isolation level read committed`;
      try {
        return await super.query(`${isolated}; ${settings}; ${rest}`);
      } catch (error) {
        await super.query("rollback").catch(() => {});
        throw error;
      }
    }
  };
}

const beginsTransaction = /^\s*(begin|start\s+transaction)\b/i;
const hasIsolation = /\bisolation\s+level\b/i;
