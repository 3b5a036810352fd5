/**
 * Elements of every type: their bits, their values, how NCCL and CUDA round to them, and what the operands that they
 * make up must be. Loops over many elements are the devices'. It uses the public vocabulary alone.
 */
@NullMarked
package org.millrace.element;

import org.jspecify.annotations.NullMarked;
