/**
 * What the proxy of a connection does whose kernel gathers its slices itself (NCCL's network device UNPACK, version 7):
 * the pages that payloads arrive in, the lists that say where they lie, and which list a slice has.
 */
@NullMarked
package org.millrace.proxy.unpack;

import org.jspecify.annotations.NullMarked;

