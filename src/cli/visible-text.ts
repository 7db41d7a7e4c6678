/** What comes from outside may hold control characters that a terminal would obey. */
export const visible = (text: string): string =>
  text.replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
