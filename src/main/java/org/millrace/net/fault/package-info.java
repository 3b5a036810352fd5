/**
 * Faults on purpose: a network that goes wrong where a setting says, for tests of what is above it, in our builds and
 * in a user's cluster.
 */
package org.millrace.net.fault;
