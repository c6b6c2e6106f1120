// Loads a SavedModel with the C++ loader that TF Serving uses and runs requests through it.
//
//     load_saved_model SAVED_MODEL OP_LIBRARY REQUESTS ANSWERS
//
// OP_LIBRARY is tensorflow-text's _sentencepiece_tokenizer.so, which a server links. REQUESTS is a
// TFRecord file of NameAttrList messages, each with the name of a signature and its input tensors by
// name. (TF Serving uses PredictRequest, which the tensorflow wheel does not contain.) ANSWERS is
// written with one message per request, which has the output tensors by name.

#include <dlfcn.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/io/record_reader.h"
#include "tensorflow/core/lib/io/record_writer.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/public/session.h"

namespace tf = tensorflow;

// Ends the program with the message of a status that is not OK.
void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << std::endl;
  std::exit(1);
}

// Feeds the request's tensors to its signature and fetches all outputs.
tf::NameAttrList Answer(const tf::SavedModelBundle& model, const tf::NameAttrList& request) {
  const tf::SignatureDef& signature = model.GetSignatures().at(request.name());
  std::vector<std::pair<std::string, tf::Tensor>> feeds;
  for (const auto& [name, value] : request.attr()) {
    tf::Tensor tensor;
    if (!tensor.FromProto(value.tensor())) Require(absl::InvalidArgumentError(name));
    feeds.emplace_back(signature.inputs().at(name).name(), tensor);
  }
  std::vector<std::string> names, fetches;
  for (const auto& [name, info] : signature.outputs()) {
    names.push_back(name);
    fetches.push_back(info.name());
  }
  std::vector<tf::Tensor> found;
  Require(model.GetSession()->Run(feeds, fetches, {}, &found));
  tf::NameAttrList answer;
  answer.set_name(request.name());
  for (size_t i = 0; i < names.size(); ++i) {
    found[i].AsProtoField((*answer.mutable_attr())[names[i]].mutable_tensor());
  }
  return answer;
}

int main(int argc, char** argv) {
  if (argc != 5) Require(absl::InvalidArgumentError("expected 4 arguments"));
  if (!dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL)) Require(absl::NotFoundError(dlerror()));
  tf::SavedModelBundle model;
  Require(tf::LoadSavedModel({}, {}, argv[1], {"serve"}, &model));

  std::unique_ptr<tf::RandomAccessFile> requests;
  std::unique_ptr<tf::WritableFile> answers;
  Require(tf::Env::Default()->NewRandomAccessFile(argv[3], &requests));
  Require(tf::Env::Default()->NewWritableFile(argv[4], &answers));
  tf::io::SequentialRecordReader reader(requests.get());
  tf::io::RecordWriter writer(answers.get());
  tf::tstring record;
  absl::Status status;
  while ((status = reader.ReadRecord(&record)).ok()) {
    tf::NameAttrList request;
    if (!request.ParseFromString(std::string(record))) Require(absl::DataLossError(argv[3]));
    Require(writer.WriteRecord(Answer(model, request).SerializeAsString()));
  }
  if (!absl::IsOutOfRange(status)) Require(status);  // out of range is the end of the file
  Require(writer.Close());
  Require(answers->Close());
}
