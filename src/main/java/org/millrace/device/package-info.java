/** The device side of NCCL's protocol: what a kernel does to the memory that it shares with a proxy. */
package org.millrace.device;
