/**
 * Objects of a native library that are given back exactly once, and never while a call uses them:
 * {@link org.millrace.cuda.handle.NativeHandle}, of which CUDA's and NCCL's objects are made.
 */
@NullMarked
package org.millrace.cuda.handle;

import org.jspecify.annotations.NullMarked;
