/** Single accesses to memory, and the pairs of accesses in protocols, each in a separate loop. */
package org.millrace.bench.access;
