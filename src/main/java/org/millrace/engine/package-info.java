/** Our own communicator: how ranks meet, how rings are made, and how operations reach the device and the proxies. */
@NullMarked
package org.millrace.engine;

import org.jspecify.annotations.NullMarked;
