/** How something is measured: loops of Java and C in turns, and what their samples say. */
package org.millrace.bench.measure;
