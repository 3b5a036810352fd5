/**
 * How two ranks' devices come to share a connection: over a network with a proxy on each side, or through memory that
 * both reach.
 */
package org.millrace.transport;
