/**
 * head-bytes - how long the head of a request may be: imported before the HTTP library, which looks once, when it is
 * loaded
 *
 * Its own 4 KiB are less than proxies in front of us and tracing headers need.
 *
 * Spec request.head-bytes
 */

process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= '16384'
