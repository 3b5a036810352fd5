/**
 * Copies on a GPU that a thread begins and asks after later: by a copy engine, or by a kernel that stays for small ones
 * ({@code src/main/cuda/copy.cu}). It decides which of the two makes a copy and keeps their order; what the copies are
 * for is GIN's matter. It uses the driver's functions of {@code org.millrace.cuda} and the mailbox of
 * {@code org.millrace.abi}.
 */
@NullMarked
package org.millrace.cuda.copy;

import org.jspecify.annotations.NullMarked;
