/** The command: which suites are run, in JVMs of their own, on which cores, and what becomes of what they measured. */
package org.millrace.bench.run;
