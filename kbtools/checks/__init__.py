"""The rules of a knowledge base, and the knowledge base that they are about."""
