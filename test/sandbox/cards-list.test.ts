import { format } from "oxfmt";
import { expect, test } from "vitest";
import { registerSandbox } from "../../src/parts/sandbox/cli/sandbox.ts";
import { behaviourOf, testCards } from "../../src/parts/sandbox/resources/payment-methods/test-cards.ts";
import { runCommand } from "../main/cli/command-line.ts";

const cards = Object.entries(testCards);

test("sandbox cards prints every test card with its number and what it does, as a table or as JSON", async () => {
  const { out, error } = await runCommand(registerSandbox, ["sandbox", "cards"], { env: {} });
  expect(error).toBeNull();
  for (const [token, card] of cards) {
    const line = out.split("\n").find((each) => each.split(/\s+/).includes(token));
    expect(line, token).toContain(card.number ?? "");
    expect(line, token).toContain(behaviourOf(card));
  }
  const json = await runCommand(registerSandbox, ["sandbox", "cards", "--json"], { env: {} });
  const rows = JSON.parse(json.out) as { token: string }[];
  expect(rows.map(({ token }) => token)).toEqual(cards.map(([token]) => token));
  expect(rows[0]).toEqual({
    token: "card_visa",
    number: "4111111111111111",
    brand: "visa",
    last4: "1111",
    does: "charges: approved",
  });
});

test("docs/sandbox-cards.md has the same list", async () => {
  const rows = cards.map(
    ([token, card]) =>
      `| \`${token}\` | ${card.number ?? `none; ends in ${card.last4}`} | ${card.brand} | ${behaviourOf(card)} |`,
  );
  const text = [
    "# Test cards of the sandbox",
    "",
    "`node src/bin/tallyhook.js sandbox cards` prints this list; `npm test -- test/sandbox/cards-list.test.ts -u` " +
      "writes it again.",
    "",
    "A token goes where a gateway vault id or a billing id goes, a number where cards are captured. Outcomes come in turn, one a",
    "charge or refund of the stored card, and the last one repeats. Any other number succeeds.",
    "",
    "| Token | Number | Brand | What it does |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
  const { code } = await format("sandbox-cards.md", text, { printWidth: 100 });
  await expect(code).toMatchFileSnapshot("../../docs/sandbox-cards.md");
});
