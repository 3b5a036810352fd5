/** The command: it selects suites, runs them in separate JVMs on chosen cores, and writes their results. */
package org.millrace.bench.run;
