/** Cost of calls from Java to C and from C to Java, and of Java's ways to access memory. */
package org.millrace.bench.crossing;
