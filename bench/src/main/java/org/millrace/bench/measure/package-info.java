/** The method of measurement: loops of Java and C alternate, and their samples are evaluated. */
package org.millrace.bench.measure;
