/**
 * How two processes meet to connect over a plugin: over TCP, where the listening one says where its plugin listens.
 */
@NullMarked
package org.millrace.net.plugin.handshake;

import org.jspecify.annotations.NullMarked;
