/** What comes from outside may hold control characters that a terminal would obey, or that XML does not allow. */
export const visible = (text: string): string =>
  text.replace(/[\u0000-\u001f\u007f-\u009f\ufffe\uffff]/g, "\ufffd");
