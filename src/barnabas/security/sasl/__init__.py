"""The mechanisms of SASL, each as a machine for the client's side and one for the server's: bytes in, bytes out."""
