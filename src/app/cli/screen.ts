let isWide = false;

/** `--wide`: tables are as wide as their content. */
export const showWide = (): void => {
  isWide = true;
};

/** Terminals that do not tell their size. */
const usualWidth = 80;

/** The places of a line of output. What is read by a program or from a file is never cut, so it has no end. */
export const screenWidth = ({ isTTY, columns }: NodeJS.WriteStream = process.stdout): number =>
  isTTY && !isWide ? columns || usualWidth : Infinity;
