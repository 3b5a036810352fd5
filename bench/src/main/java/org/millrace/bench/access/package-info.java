/** Single accesses to memory and the pairs that protocols are made of, each in a loop of its own. */
package org.millrace.bench.access;
