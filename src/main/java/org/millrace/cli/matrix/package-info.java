/**
 * {@code millrace matrix}: every collective over every transport, in every protocol and mode, with threads and
 * processes.
 */
package org.millrace.cli.matrix;
