"""Every call as a description: which request is sent and what its answer is. Written once, for both clients.

A function returns a `Request`, or `Steps` where one request is not enough, or a `Source` where the answer is a stream. Not here: sending.
"""
