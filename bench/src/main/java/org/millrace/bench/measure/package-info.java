/** The method of measurement: loops of Java and C in turns, and the evaluation of their samples. */
package org.millrace.bench.measure;
