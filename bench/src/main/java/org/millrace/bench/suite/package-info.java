/** What is measured. */
package org.millrace.bench.suite;
