/** Cost of calls from Java to C and from C to Java, and of the ways in which Java accesses memory. */
package org.millrace.bench.crossing;
