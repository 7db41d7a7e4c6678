import { type Browser, type BrowserContextOptions, type Page, chromium, firefox } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { chromiumPath, firefoxPath, headlessShellPath } from "../../support/chromium.ts";
import { send } from "../dashboard-stand.ts";
import { inPageFile } from "./in-page.ts";

/** A page that notes whatever a person must not meet. */
export interface WatchedPage {
  page: Page;
  /** Opens an address of the dashboard, and gives back the status of its answer. */
  go(address: string): Promise<number>;
  /** What the browser would get there, without it: a fraction of the work. */
  read(address: string): Promise<{ status: number; html: string }>;
  /** What went wrong since it was last asked: scripts, styles and requests that were refused, errors, dialogs. */
  complaints(): string[];
  close(): Promise<void>;
}

export interface OpenOptions extends BrowserContextOptions {
  /** Of the dashboard. */
  url: string;
  /** As `signedIn` gives it; null: nobody is signed in. */
  cookie?: string | null;
}

export interface TestBrowser {
  /** A browser of one person: nothing is shared with others. */
  open(options: OpenOptions): Promise<WatchedPage>;
}

/**
 * A real browser for the tests of a file. `keepsPages`: as a person's browser, it may show a page again that it kept;
 * otherwise each is loaded.
 */
export function useBrowser({
  keepsPages = false,
  engine = "chromium",
}: { keepsPages?: boolean; engine?: "chromium" | "firefox" } = {}): TestBrowser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (engine === "firefox") {
      // The machine's own Firefox, by WebDriver BiDi.
      browser = await firefox.launch({ channel: "moz-firefox", executablePath: firefoxPath ?? "firefox" });
      return;
    }
    browser = await chromium.launch({
      executablePath: (keepsPages ? chromiumPath : headlessShellPath) ?? "chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
      ...(keepsPages ? { ignoreDefaultArgs: ["--disable-back-forward-cache"] } : {}),
    });
  });
  afterAll(() => browser?.close());
  return {
    async open({ url, cookie = null, ...options }) {
      if (browser === undefined) throw new Error("The browser is not there before the first test.");
      // Colours that change by and by would be measured on their way.
      const context = await browser.newContext({ reducedMotion: "reduce", ...options });
      if (cookie !== null) {
        const [name = "", value = ""] = cookie.split("=");
        await context.addCookies([{ name, value, url }]);
      }
      await context.addInitScript({ path: inPageFile });
      const page = await context.newPage();
      const complaints = watch(page, url);
      return {
        page,
        complaints: () => complaints.splice(0),
        async go(address) {
          const answer = await page.goto(`${url}${address}`);
          return answer?.status() ?? 0;
        },
        async read(address) {
          const answer = await send(`${url}${address}`, cookie === null ? {} : { cookie });
          return { status: answer.status, html: await answer.text() };
        },
        close: () => context.close(),
      };
    },
  };
}

/** The page's console says so when the page itself was answered with an error, which is no fault of the page. */
const saysStatus = /^Failed to load resource: the server responded with a status of 4\d\d/;

/** A field for a time shows none where the address says something else, and the page says what is wrong. */
const saysNoTime = /^The specified value .* does not conform to the required format/s;

function watch(page: Page, url: string): string[] {
  const complaints: string[] = [];
  const { origin } = new URL(url);
  page.on("console", (message) => {
    const text = message.text();
    const isOwnStatus = saysStatus.test(text) && message.location().url === page.url();
    const isMeant = isOwnStatus || saysNoTime.test(text);
    if (["error", "warning"].includes(message.type()) && !isMeant) {
      complaints.push(`console: ${text}`);
    }
  });
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const to = request.url();
    if (new URL(to).origin !== origin && to !== "data:,") complaints.push(`request to ${to}`);
  });
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText ?? "";
    // Whoever leaves a page ends what it was asking for.
    if (!/^(net::ERR_ABORTED|NS_BINDING_ABORTED)$/.test(reason)) complaints.push(`failed: ${request.url()} ${reason}`);
  });
  return complaints;
}
