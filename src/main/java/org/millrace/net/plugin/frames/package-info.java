/**
 * The two ends of a connection over a plugin: frames as messages of two of the plugin's communicators.
 *
 * <p>
 * One communicator carries a message for each frame: its header, and its payload behind it if that is short
 * ({@link org.millrace.net.plugin.frames.MessageFormat}). The receiving end keeps receives posted for them. The other
 * carries longer payloads, straight from the sender's memory to the receiver's, in pieces: the receives for them are
 * posted when their destination is known. Each communicator's messages are sent and received in one order, as plugins
 * need not look at tags; and because the two orders are independent, two are needed.
 *
 * <p>
 * A TCP connection between the two processes, over which the connection was set up, says when it ends
 * ({@link org.millrace.net.plugin.frames.PluginConnection}).
 */
@NullMarked
package org.millrace.net.plugin.frames;

import org.jspecify.annotations.NullMarked;
