/** Waiting for something that comes now and then. */
package org.millrace.bench.idle;
