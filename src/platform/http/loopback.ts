/** Whether a host name means this machine, written as in URLs: lower case, IPv6 in brackets. */
export const isLoopbackHost = (hostname: string): boolean =>
  /^(127(\.\d+){3}|\[::1\]|localhost|.+\.localhost)$/.test(hostname);
