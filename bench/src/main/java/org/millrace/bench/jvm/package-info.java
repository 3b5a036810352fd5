/**
 * Round trips and all-reduces between processes, by Millrace and by other libraries. {@code bench/jvm.sh} runs them.
 */
package org.millrace.bench.jvm;
