/**
 * Single elements of every type: their bits, their values, and how NCCL and CUDA round to them. Loops over many
 * elements are the devices'.
 */
package org.millrace.element;
