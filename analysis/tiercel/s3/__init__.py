"""Object storage by S3: requests of our own over HTTP/1.1, with nothing but the standard library.

    place = Location.parse("s3://bucket/prefix", Endpoint("http://localhost:7070"))
    client = Client(place.endpoint, place.bucket)
    client.put("prefix/name", [b"content"])

Why not boto3, and why not C: docs/object-storage.md. Who measures decides what goes over the wire: one
request for what is one read, answers straight into the reader's memory, nothing tried again in silence.
(`endpoint` is imported by what must start quickly; so this file imports nothing.)
"""
