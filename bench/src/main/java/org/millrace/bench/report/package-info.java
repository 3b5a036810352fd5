/** Results as data, as a page and as tables, and their comparison with earlier results. */
package org.millrace.bench.report;
