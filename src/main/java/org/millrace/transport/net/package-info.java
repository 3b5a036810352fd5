/**
 * The transport NET: a proxy on each side carries every step over a network. How a network carries it is not known
 * here; slots of a pool and connections that several channels share are.
 */
@NullMarked
package org.millrace.transport.net;

import org.jspecify.annotations.NullMarked;
