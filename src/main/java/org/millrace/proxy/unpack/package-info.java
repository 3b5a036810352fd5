/**
 * The proxy's part of NCCL's network device UNPACK, version 7, with which a kernel gathers its slices itself: the pages
 * that payloads arrive in, the lists that say where they lie, and which list a slice has.
 * {@link org.millrace.proxy.unpack.UnpackReceiveSource} stands before the source of steps in slots of a
 * {@link org.millrace.proxy.ReceiveProxy}. Who gives a connection its pages and lists is the plugin's matter.
 */
@NullMarked
package org.millrace.proxy.unpack;

import org.jspecify.annotations.NullMarked;
