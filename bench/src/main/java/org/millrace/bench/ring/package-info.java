/** Steps through the memory that device and proxy share, made by two threads or two processes. */
package org.millrace.bench.ring;
