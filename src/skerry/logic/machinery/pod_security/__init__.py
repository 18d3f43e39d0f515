"""Pod Security Standards, as the PodSecurity admission plugin of Kubernetes 1.32 reads them.

``policy`` parses what the labels of a Namespace ask for, ``baseline`` and ``restricted`` hold one
function per check, ``evaluation`` runs those that a level has in a version, ``namespaces`` says
which existing pods a new level would refuse, ``configuration`` reads defaults and exemptions.

Messages are those of Kubernetes, word for word: people search for them.
"""
