/**
 * UCX's libucp, found at run time: whether it is there and new enough, one context for the process, memory that is
 * known to it, and what its answers mean.
 *
 * <p>
 * Its functions are generated from {@code headers/ucx}: handles and addresses are numbers there, so that a call makes
 * no object. No function of ours is ever called by the library.
 */
@NullMarked
package org.millrace.net.ucx.library;

import org.jspecify.annotations.NullMarked;
