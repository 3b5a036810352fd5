/**
 * How a communicator's connections are made, on a thread of their own, while operations are issued for them already. A
 * connector is asked for by the engine, connected over a transport, and hands the device its port and the proxies their
 * work. What is sent over it is not known here.
 */
@NullMarked
package org.millrace.engine.connect;

import org.jspecify.annotations.NullMarked;
