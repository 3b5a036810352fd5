/** What was measured, as data, as a page and as tables; and against what was measured before. */
package org.millrace.bench.report;
