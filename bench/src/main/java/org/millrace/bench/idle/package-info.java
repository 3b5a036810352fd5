/** Waiting for events that occur now and then. */
package org.millrace.bench.idle;
