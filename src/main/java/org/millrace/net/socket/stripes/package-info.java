/** A room of the network; see its parent. */
package org.millrace.net.socket.stripes;
