/** Frames of Millrace's networks between two threads. */
package org.millrace.bench.frames;
