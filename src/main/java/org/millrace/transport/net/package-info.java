/**
 * The transport NET: a proxy on each side carries every step over a network. It knows slots of a pool and connections
 * that several channels share; it does not know how a network carries a step.
 */
@NullMarked
package org.millrace.transport.net;

import org.jspecify.annotations.NullMarked;
